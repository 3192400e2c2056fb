import { Elysia } from 'elysia'
import type { Services } from '../http/services.ts'
import { approvalPageRoutes } from './approval/approvalPageRoutes.ts'
import { connectRoutes } from './connectRoutes.ts'
import { consoleMailRoutes } from './consoleMailRoutes.ts'
import { jobRoutes } from './jobRoutes.ts'
import { organizationRoutes } from './organizationRoutes.ts'
import { overviewRoutes } from './overviewRoutes.ts'
import { pageRoutes } from './pageRoutes.ts'
import { companyRoutes } from './people/companyRoutes.ts'
import { passkeyRoutes } from './people/passkeyRoutes.ts'
import { peopleRoutes } from './people/peopleRoutes.ts'
import { sessionRoutes } from './people/sessionRoutes.ts'
import { signInMailRoutes } from './people/signInMailRoutes.ts'

/**
 * Serves the console page and the routes that only the console has. The file delegation.ts opens some routes of the API
 * to the console.
 */
export function consoleRoutes(services: Services) {
  return new Elysia()
    .use(pageRoutes())
    .use(approvalPageRoutes(services))
    .use(sessionRoutes(services))
    .use(signInMailRoutes(services))
    .use(passkeyRoutes(services))
    .use(companyRoutes(services))
    .use(peopleRoutes(services))
    .use(connectRoutes(services))
    .use(overviewRoutes(services))
    .use(jobRoutes(services))
    .use(organizationRoutes(services))
    .use(consoleMailRoutes(services))
}
