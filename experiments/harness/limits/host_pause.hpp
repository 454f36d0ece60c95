#pragma once

namespace feedrate {

/// Scheduling delay of spinning threads: the 99th percentile of the time by which a polling thread sees an event late,
/// over threads on all cores but two, within 20 ms. Timer ticks and the hypervisor occasionally suspend a thread, so
/// under open load no queue with as many threads at its ends has a shorter tail. Readings differ by a factor of up to
/// four.
double host_pause_p99_ns();

}  // namespace feedrate
