#include "variants/handoff/shm.hpp"

namespace feedrate::handoff {
namespace {

const WayRegistration registered("shm_copy",
                                 {.description = "host memory that both processes map, with pageable copies",
                                  .copies = {.device_of_reader = 1, .host = 1, .moves_over_bus = 2},
                                  .exporter = make<Exporter, ShmExporter<false>>,
                                  .importer = make<Importer, ShmImporter<false>>});

}  // namespace
}  // namespace feedrate::handoff
