/* Socket connections between all processes, as a link of link.h, for launchers
 * without MPI such as torchrun. */
#ifndef RUNTIME_TEAM_SOCKET_H
#define RUNTIME_TEAM_SOCKET_H

#include "runtime/team/link.h"

extern const struct ckr_link socket_link;

#endif
