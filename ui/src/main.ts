import { mount } from 'svelte';
import './app.css';
import App from './App.svelte';
import { listen } from './route/router.svelte';

listen();
const target = document.getElementById('app');
if (target) mount(App, { target });
