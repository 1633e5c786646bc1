"""The runtime below all rooms: threads, progress, scikit-learn's callbacks, files written as a whole, names imported on demand."""
