"""From a Query to a page of events: selection (filters resolved), branches (one WHERE each, for rows and for count), page, presentation."""
