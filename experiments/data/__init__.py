"""The data sets of the experiments: tables from a folder or from OpenML; texts, graphs, mixed data frames and tissue from a folder."""
