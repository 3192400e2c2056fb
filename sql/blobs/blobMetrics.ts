import { Histogram, type Registry } from 'prom-client'
import type { ObserveStore } from '../../shared/blobs/objectStore.ts'

const SECONDS_BUCKETS = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 60]

/** Measures the requests to the object store. */
export function measureBlobs(registry: Registry): ObserveStore {
  const seconds = new Histogram({
    name: 'purser_blob_request_seconds',
    help: 'Requests to the object store by operation and outcome',
    labelNames: ['operation', 'outcome'],
    buckets: SECONDS_BUCKETS,
    registers: [registry],
  })
  return ({ operation, outcome, seconds: took }) => seconds.observe({ operation, outcome }, took)
}
