/* Reading records of files and block devices into GPU memory, for programs in C and in other languages. It stands on
 * feedrate/storage.hpp, which explains sources, kinds and places.
 *
 *   feedrate_source* source = feedrate_source_open(paths, 2, NULL, error, sizeof error);
 *   unsigned images;
 *   feedrate_source_add_kind(source, "images", 0, FEEDRATE_TO_THE_END, 150528, NULL, 0, &images, error, sizeof error);
 *   feedrate_source_read(source, images, 0, 256, gpu_pointer, error, sizeof error);
 *   feedrate_source_close(source);
 *
 * Calls that return an int return 0; 1 if a file, a drive or the device failed; or 2 if an argument is invalid. Then
 * `error` receives a message of at most `room` bytes, with its final 0; it may be null if `room` is 0. All calls may
 * come from several threads, except that nothing else may use an object that is being closed. */
#ifndef FEEDRATE_STORAGE_H
#define FEEDRATE_STORAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FEEDRATE_STORAGE_CALL __attribute__((visibility("default")))
#else
#define FEEDRATE_STORAGE_CALL
#endif
#define FEEDRATE_TO_THE_END UINT64_MAX

typedef struct feedrate_source feedrate_source;
typedef struct feedrate_pending feedrate_pending; /* a read that is under way */

/* 0 and null are the defaults of SourceOptions in feedrate/storage.hpp. */
typedef struct {
  const char* device; /* "cuda", "cpu" or "auto" */
  unsigned gpu;       /* CUDA index */
  const char* engine; /* "threads", "io_uring" or "auto" */
  int direct;         /* not 0: bypass the page cache */
  int writable;       /* not 0: open for writing as well */
  size_t block;       /* bytes of the largest request to the system */
  unsigned depth;     /* requests in flight */
  size_t gap;         /* bytes that a batch reads between two records to join them */
} feedrate_source_options;

typedef struct {
  unsigned kind;
  uint64_t index;
  void* place;
} feedrate_record;

/* Returns null after an error. `options` may be null. */
FEEDRATE_STORAGE_CALL feedrate_source* feedrate_source_open(const char* const* paths, size_t count,
                                                            const feedrate_source_options* options, char* error,
                                                            size_t room);
/* Waits for the requests under way; other requests fail. Null is allowed. */
FEEDRATE_STORAGE_CALL void feedrate_source_close(feedrate_source*);
FEEDRATE_STORAGE_CALL uint64_t feedrate_source_bytes(const feedrate_source*);
/* Records of one size, or, if `record_bytes` is 0, from each of the `count` offsets to the next. */
FEEDRATE_STORAGE_CALL int feedrate_source_add_kind(feedrate_source*, const char* name, uint64_t start, uint64_t bytes,
                                                   uint64_t record_bytes, const uint64_t* offsets, size_t count,
                                                   unsigned* kind, char* error, size_t room);
FEEDRATE_STORAGE_CALL int feedrate_source_read(feedrate_source*, unsigned kind, uint64_t first, uint64_t count,
                                               void* place, char* error, size_t room);
FEEDRATE_STORAGE_CALL int feedrate_source_read_batch(feedrate_source*, const feedrate_record* records, size_t count,
                                                     char* error, size_t room);
FEEDRATE_STORAGE_CALL int feedrate_source_read_bytes(feedrate_source*, uint64_t start, uint64_t bytes, void* place,
                                                     char* error, size_t room);
FEEDRATE_STORAGE_CALL int feedrate_source_write(feedrate_source*, unsigned kind, uint64_t first, uint64_t count,
                                                const void* place, char* error, size_t room);
FEEDRATE_STORAGE_CALL int feedrate_source_sync(feedrate_source*, char* error, size_t room);

/* Starts the read of a batch. If `in_order` is not 0, it runs in the order of `stream`, a cudaStream_t. Returns null
 * after an error. */
FEEDRATE_STORAGE_CALL feedrate_pending* feedrate_source_start_batch(feedrate_source*, const feedrate_record* records,
                                                                    size_t count, int in_order, void* stream,
                                                                    char* error, size_t room);
/* Waits at most `seconds`, or without a limit if that is negative. Sets `ended`, which may be null, to whether it has
 * ended; returns its error. */
FEEDRATE_STORAGE_CALL int feedrate_pending_wait(feedrate_pending*, double seconds, int* ended, char* error,
                                                size_t room);
/* Does not wait: the places must stay valid until the end. Null is allowed. */
FEEDRATE_STORAGE_CALL void feedrate_pending_release(feedrate_pending*);

/* Thin names for one file or drive, whose data goes to the first GPU, or to the process's memory without one. The calls
 * print their errors to stderr, and return -1 or null. */
typedef feedrate_source nvme_gpu_request;
FEEDRATE_STORAGE_CALL nvme_gpu_request* nvme_gpu_create_request(const char* path);
/* Returns the number of the kind. */
FEEDRATE_STORAGE_CALL int nvme_gpu_add_kind(nvme_gpu_request*, const char* name, uint64_t start, uint64_t bytes,
                                            uint64_t record_bytes);
FEEDRATE_STORAGE_CALL int read_nvme_kind(nvme_gpu_request*, int kind, uint64_t first, uint64_t count, void* place);
FEEDRATE_STORAGE_CALL int nvme_gpu_batch_read(nvme_gpu_request*, const feedrate_record* records, size_t count);
FEEDRATE_STORAGE_CALL void nvme_gpu_release_request(nvme_gpu_request*);

#ifdef __cplusplus
}
#endif
#endif
