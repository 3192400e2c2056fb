import { Elysia } from 'elysia'
import type { Services } from '../http/services.ts'
import { jobRoutes } from './jobs.ts'
import { consoleMailRoutes } from './mail.ts'
import { organizationRoutes } from './organization.ts'
import { overviewRoutes } from './overview.ts'
import { pageRoutes } from './pages.ts'
import { sessionRoutes } from './sessions.ts'

/** The operator's page, and what it asks for beside the API itself (delegation.ts). */
export function consoleRoutes(services: Services) {
  return new Elysia()
    .use(pageRoutes())
    .use(sessionRoutes(services))
    .use(overviewRoutes(services))
    .use(jobRoutes(services))
    .use(organizationRoutes(services))
    .use(consoleMailRoutes(services))
}
