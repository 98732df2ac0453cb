"""What commands share: their parser, tables, options of the config."""
