/**
 * Marks a test file that takes long. `npm test` leaves the file out and runs a shorter test file of the same part of
 * the service. `npm run test:long` runs only the files with this mark. CI runs both commands. Each command runs the
 * file if a pattern names it.
 */
export {}
