/* The transport over sockets between all processes, for launchers without MPI
 * such as torchrun. */
#ifndef RUNTIME_TEAM_SOCKET_H
#define RUNTIME_TEAM_SOCKET_H

#include "runtime/team/transport.h"

extern const struct ckr_transport socket_transport;

#endif
