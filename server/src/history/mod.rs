//! Finished invocations: batched into SQLite, counted in histograms, pushed to whoever listens.
