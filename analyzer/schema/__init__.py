"""What a report says: the types are the JSON of schema 1. `report` is the whole, the others are its tables."""
