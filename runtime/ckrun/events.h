/* Event files that TensorBoard reads: records with checksums (TFRecord), each
 * one an Event of tensorflow/core/util/event.proto. */
#ifndef RUNTIME_CKRUN_EVENTS_H
#define RUNTIME_CKRUN_EVENTS_H

#include <stdint.h>
#include <stdio.h>

/* A new file in the folder, which is made if its parent is there; NULL with
 * errno set. */
FILE *events_open(const char *folder);
/* A scalar; failures are the stream's. */
void events_put(FILE *, uint64_t step, const char *tag, float value);

#endif
