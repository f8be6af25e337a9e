"""What a report claims, and whether its sources support it: figures, dates, equations, calculations."""
