"""What users see: tables of text, data frames, arviz objects, HTML pages, progress."""
