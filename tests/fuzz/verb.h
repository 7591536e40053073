/* Verbs that read one file and write another. */
#ifndef TESTS_FUZZ_VERB_H
#define TESTS_FUZZ_VERB_H

#include "frontend/driver/verbs.h"

/* Where the verb writes: a file in a folder of its own. */
const char *verb_output(void);
/* Run it: judged like every reader, and the output must be there, whole, after
 * success and must not be there, nor anything else, after a failure. */
void verb_try(bool (*verb)(const struct cli *, Arena *, Diag *),
              const struct cli *);

#endif
