/* The queue that a transport takes its files from: the transfer thread's side of a transfer. */
#ifndef SYNC_FLIGHT_H
#define SYNC_FLIGHT_H

#include "sbx/transport.h"

struct sbx_transfer;

struct sbx_queue sbx_flight_queue(struct sbx_transfer *t);
/* After a fetch: files that were not ended are lost, the filling batch is handed over. */
void sbx_flight_settle(struct sbx_transfer *t);
void sbx_flight_free_all(struct sbx_transfer *t);

#endif
