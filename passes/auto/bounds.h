/* Lower bounds of what a configuration takes, from plans of others.
 *
 * in      a configuration; a plan of the same micro-batch, without a budget
 * out     seconds and bytes that no plan of it undercuts
 */
#ifndef PASSES_AUTO_BOUNDS_H
#define PASSES_AUTO_BOUNDS_H

#include "passes/auto/auto.h"

/* From the plan on one device: ranks share its work without any loss, replicas
 * the update with ZeRO. */
double bound_by_device(const struct auto_request *, const struct auto_config *,
                       const struct auto_plan *one);
/* From the plan of one replica of tp ranks, of which the configuration has as
 * many or n times as many; or of as many replicas as share experts.  Transfers
 * between replicas are counted as far as computation cannot hide them. */
double bound_by_replica(const struct auto_request *, const struct auto_config *,
                        const struct auto_plan *replica, int64_t tp);
/* Bytes, from the plan of one replica; *states: of them, optimizer state. */
int64_t bytes_by_replica(const struct auto_config *,
                         const struct auto_plan *replica, int64_t *states);

/* To a higher bound. */
void bound_raise(struct auto_candidate *, double bound);
/* Refuse a candidate if every plan of it has more bytes than the budget. */
void refuse_if_small(const struct auto_request *, struct auto_candidate *,
                     int64_t needs, int64_t states);

#endif
