import { mount } from 'svelte';
import '../app.css';
import { demo } from './demo.svelte';
import Guide from './Guide.svelte';

void demo.start();
const target = document.getElementById('app');
if (target) mount(Guide, { target });
