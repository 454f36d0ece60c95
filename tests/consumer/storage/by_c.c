/* The interface in C: reads the numbers that main.cpp wrote. */
#include <feedrate/storage.h>

#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                           \
  do {                                                              \
    if (!(condition)) {                                             \
      fprintf(stderr, "%d: %s: %s\n", __LINE__, #condition, error); \
      return 1;                                                     \
    }                                                               \
  } while (0)

int read_by_c(const char* path) {
  char error[200] = "";
  const feedrate_source_options options = {.device = "cpu", .engine = "threads"};
  feedrate_source* source = feedrate_source_open(&path, 1, &options, error, sizeof error);
  EXPECT(source != NULL && feedrate_source_bytes(source) == 400000);
  unsigned rows = 9, parts = 9;
  EXPECT(feedrate_source_add_kind(source, "rows", 0, FEEDRATE_TO_THE_END, 400, NULL, 0, &rows, error, sizeof error) ==
         0);
  const uint64_t offsets[] = {0, 4, 400};
  EXPECT(feedrate_source_add_kind(source, "parts", 4, 0, 0, offsets, 3, &parts, error, sizeof error) == 0);
  EXPECT(rows == 0 && parts == 1);
  uint32_t got[300] = {0};
  EXPECT(feedrate_source_read(source, rows, 10, 2, got, error, sizeof error) == 0 && got[0] == 1000 &&
         got[199] == 1199);
  const feedrate_record batch[] = {{parts, 0, got}, {rows, 999, got + 1}};
  EXPECT(feedrate_source_read_batch(source, batch, 2, error, sizeof error) == 0 && got[0] == 1 && got[1] == 99900);
  EXPECT(feedrate_source_read_bytes(source, 8, 4, got, error, sizeof error) == 0 && got[0] == 2);
  feedrate_pending* pending = feedrate_source_start_batch(source, batch, 2, 0, NULL, error, sizeof error);
  int ended = 0;
  EXPECT(pending != NULL && feedrate_pending_wait(pending, -1, &ended, error, sizeof error) == 0 && ended == 1);
  feedrate_pending_release(pending);
  EXPECT(feedrate_source_read(source, rows, 999, 2, got, error, sizeof error) == 2 && strstr(error, "'rows'") != NULL);
  EXPECT(feedrate_source_write(source, rows, 0, 1, got, error, sizeof error) == 2 && strstr(error, "writable") != NULL);
  EXPECT(feedrate_source_read(NULL, 0, 0, 0, got, error, 8) == 2 && strlen(error) == 7);
  feedrate_source_close(source);

  nvme_gpu_request* request = nvme_gpu_create_request("/none");
  EXPECT(request == NULL);
  nvme_gpu_release_request(request);
  return 0;
}
