"""One Kineto file into columns: split, filtered, decoded; salvaged where it is damaged."""
