-- The removal of a person deletes no OAuth grant. An app can have so many tokens that their deletion exceeds the
-- statement timeout, and would keep the person from removal. The removal ends the grants, and the housekeeping deletes
-- them with their tokens. The grant of a removed person issues no tokens, because nobody else gets the person's id.
alter table oauth_grants drop constraint oauth_grants_person;
