/* Room run_report: ckrun report, a page of curves from the logs of runs.
 *
 * in      files of `ckrun --log`, JSON lines or CSV, which may be broken
 * out     one HTML file, well-formed as XML: curves, last and best values;
 *         nothing loaded from elsewhere, no script
 * must not know models and training
 */
#ifndef RUNTIME_CKRUN_RUN_REPORT_RUN_REPORT_H
#define RUNTIME_CKRUN_RUN_REPORT_RUN_REPORT_H

#include <stdio.h>

#include "runtime/ckrun/run_report/history.h"

/* ---- run_report.c ---- */

/* `ckrun report` with the arguments behind these words; an exit status. */
int report_run(int argc, char **argv);

/* ---- run_page.c ---- */

enum { RUNS = 8 };                      /* on one page, a colour each */

/* False: no memory. */
bool page_put(const struct history *, size_t n, FILE *);

#endif
