"""What each question's measurements look like: one file per section, from rows to words, tables and figures. Pure."""
