//! Workload traces in and out, filters, mixes and statistical models.
