// The playground: Play with the search of this folder.
'use strict';
buildPlay(document.querySelector('#panel-play > div'), {search: searchPlay}).draw();
