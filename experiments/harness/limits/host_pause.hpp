#pragma once

namespace feedrate {

/// How late a thread that only polls sees an event at any moment: the 99th percentile, over threads on all cores but
/// two, within 20 ms. Timer ticks and the hypervisor suspend it now and then, so under open load no queue with as many
/// threads at its ends has a shorter tail. Readings differ by a factor of up to four.
double host_pause_p99_ns();

}  // namespace feedrate
