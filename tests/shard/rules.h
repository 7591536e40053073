/* Graphs of one op each, by which shard_rules tries the ops' rules. */
#ifndef TESTS_SHARD_RULES_H
#define TESTS_SHARD_RULES_H

#include <stdint.h>

struct rule_case {
	const char *op;
	const char *text;               /* what stands in the graph */
	int64_t below;                  /* integers are 1 to below - 1 */
};

extern const struct rule_case rule_case[];      /* text NULL: the end */

#endif
