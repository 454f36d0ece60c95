#include "variants/handoff/shm.hpp"

namespace feedrate::handoff {
namespace {

const WayRegistration registered(
    "shm_pinned", {.description = "host memory that both processes map and pin, with copies by the copy engines",
                   .copies = {.device_of_reader = 1, .host = 1, .moves_over_bus = 2},
                   .exporter = make<Exporter, ShmExporter<true>>,
                   .importer = make<Importer, ShmImporter<true>>});

}  // namespace
}  // namespace feedrate::handoff
