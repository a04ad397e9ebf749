"""What a host says of its devices, links, NICs and NUMA nodes."""
