/* Event files that TensorBoard reads: records with checksums (TFRecord), each
 * one an Event of tensorflow/core/util/event.proto. */
#ifndef RUNTIME_CKRUN_EVENTS_H
#define RUNTIME_CKRUN_EVENTS_H

#include <stdint.h>
#include <stdio.h>

/* Create a file in the folder, and the folder if its parent exists; NULL with
 * errno set. */
FILE *events_open(const char *folder);
/* Append a scalar; a failure sets the stream's error. */
void events_put(FILE *, uint64_t step, const char *tag, float value);

#endif
