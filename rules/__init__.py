"""Rules, a file each: q101_… to q6…; the file name is the rule's code and name."""
