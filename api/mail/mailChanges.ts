import { Elysia } from 'elysia'
import type { Services } from '../http/services.ts'
import { messageChangeRoutes } from './messageChanges.ts'
import { threadChangeRoutes } from './threadChanges.ts'

/** Label and delete messages and threads. */
export const mailChangeRoutes = (services: Services) =>
  new Elysia().use(messageChangeRoutes(services)).use(threadChangeRoutes(services))
