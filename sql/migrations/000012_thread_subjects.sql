-- Holds the SHA-256 of the subject without reply prefixes. The service uses it for replies without In-Reply-To and
-- References.
alter table threads add column subject_key bytea;
create index threads_subject on threads (project_id, subject_key, updated_at desc) where subject_key is not null;
