DELETE FROM metadata WHERE name IN ('series_states_through', 'series_states_made_from');
DROP TABLE series_states;
