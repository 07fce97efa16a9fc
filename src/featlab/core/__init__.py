"""What everything else is written in: checked fields, linear algebra, and the spaces vectors live in."""
