"""Laws by somebody who had not seen the suite, and their faults."""
