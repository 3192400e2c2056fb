import { Elysia } from 'elysia'
import type { Services } from '../http/services.ts'
import { approvalPageRoutes } from './approvalPage.ts'
import { jobRoutes } from './jobs.ts'
import { consoleMailRoutes } from './mail.ts'
import { organizationRoutes } from './organization.ts'
import { overviewRoutes } from './overview.ts'
import { pageRoutes } from './pages.ts'
import { sessionRoutes } from './sessions.ts'

/** The console page and its own routes; delegation.ts opens routes of the API. */
export function consoleRoutes(services: Services) {
  return new Elysia()
    .use(pageRoutes())
    .use(approvalPageRoutes(services))
    .use(sessionRoutes(services))
    .use(overviewRoutes(services))
    .use(jobRoutes(services))
    .use(organizationRoutes(services))
    .use(consoleMailRoutes(services))
}
