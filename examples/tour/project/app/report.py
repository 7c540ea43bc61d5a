"""The report, as a table."""

import csv

COLUMNS = ("name", "count")


def write(rows, stream):
    """Write rows, which are dictionaries, under a heading."""
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([row[column] for column in COLUMNS])
