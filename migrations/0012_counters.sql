-- What was counted while an instance served an invocation.

-- A JSON array: page faults without and with a disk, involuntary context switches, garbage collections, their µs. NULL: not counted.
ALTER TABLE invocations ADD COLUMN counters TEXT;
