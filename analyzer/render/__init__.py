"""From results to text: `formats/` holds a report's, the other folders those of each product."""
