"""What results give out: tables of text, data frames, arviz objects, HTML pages."""
