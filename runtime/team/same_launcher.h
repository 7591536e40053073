/* Processes of the same launcher: those with the same parent. */
#ifndef RUNTIME_TEAM_SAME_LAUNCHER_H
#define RUNTIME_TEAM_SAME_LAUNCHER_H

/* The pid of one that is stopped; 0: none is. */
long same_launcher_stopped(void);

#endif
