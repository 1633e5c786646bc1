"""What everything runs on: threads, progress, callbacks of scikit-learn, files that are whole or absent, names imported when asked for."""
