/* ckrun merge: a checkpoint of parts as one file. */
#ifndef RUNTIME_CKRUN_MERGE_H
#define RUNTIME_CKRUN_MERGE_H

/* `ckrun merge` with the arguments behind these words; an exit status. */
int merge_run(int argc, char **argv);

#endif
