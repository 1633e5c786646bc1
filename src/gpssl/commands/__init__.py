"""What the command line does with a person's own table, without the words it prints: one file for each command."""
