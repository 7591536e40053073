/* The learning rate's schedule as typed. */
#ifndef RUNTIME_CKRUN_SCHEDULE_H
#define RUNTIME_CKRUN_SCHEDULE_H

#include "runtime/ckrun/ckrun_options.h"

#define SCHEDULES "constant, linear, cosine, wsd[:N], step:N[,F] (F <= 1) or " \
	"restarts:N[,F] (F >= 1)"

/* NAME[:N[,F]]; warmup, total and rates of *s stay.  False: it is none of
 * SCHEDULES. */
bool schedule_parse(const char *text, struct ckr_schedule *s);
/* Its name, without N and F. */
const char *schedule_name(const struct ckr_schedule *);
/* Of a run of `total` steps. */
struct ckr_schedule schedule_for(const struct ckrun_options *, uint64_t total);
/* The step at which it ends, by which a resumed run is compared; 0: nowhere. */
uint64_t schedule_end(const struct ckrun_options *, uint64_t total);

#endif
