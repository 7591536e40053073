/* Shared by the files of the verifier. */
#ifndef IR_VERIFY_CHECKS_H
#define IR_VERIFY_CHECKS_H

#include "ir/verify/verify.h"

struct verify {
	const Graph *g;
	Diag *d;                        /* NULL: faults are only counted */
	Arena *tmp;
	int faults;
};

/* A fault of a node, a value or neither; false. */
bool verify_bad(struct verify *, const Node *, const Val *, const char *fmt,
                ...) __attribute__((format(printf, 4, 5)));
#define bad(...) verify_bad(__VA_ARGS__)

/* A value that some node or the outside gives, as opposed to one that has
 * stayed behind after its node went. */
static inline bool
is_live(const Val *v)
{
	return v->kind != V_TEMP || v->def;
}

/* Whether only transfers access host memory. */
void verify_host(struct verify *);
/* Whether values are laid out, and owners placed, as P_LAYOUT and P_PLACED
 * say; and which of the two a graph shows. */
void verify_layout(struct verify *);
void verify_placed(struct verify *);
uint32_t verify_memory_props(const Graph *);
/* That nothing touches what is on its way between ranks. */
void verify_waits(struct verify *);

#endif
