/* Processes of the same launcher: those with the same parent. */
#ifndef RUNTIME_TEAM_SAME_LAUNCHER_H
#define RUNTIME_TEAM_SAME_LAUNCHER_H

/* The number of one that is stopped; 0: there is none. */
long same_launcher_stopped(void);

#endif
