/**
 * Marks a test file that takes long. `npm test` leaves the file out, and `npm run test:long` runs only the files with
 * this mark. CI runs both. If a pattern names the file, each of these commands runs it. `npm test` runs a shorter test
 * file of the same part of the service instead of this file.
 */
export {}
