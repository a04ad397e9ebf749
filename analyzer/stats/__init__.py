"""Statistics: `arrays` names array types, `tests` holds tails and tests of samples, `draws` points without a seed."""
